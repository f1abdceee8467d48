"""Download a file that is known by its SHA-256: whole and right under its name, or not there."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request

from data import cache

ATTEMPTS = 3                                      # of one address, when the fault may pass
TIMEOUT = 8                                       # seconds without a byte
PATIENCE, SLOWEST = 30, 1000                      # seconds to begin with, then bytes per second on average
REPORT = 0.5                                      # seconds between two lines of progress
BLOCK = 1 << 16
PASSING = (429, 500, 502, 503, 504)               # HTTP statuses that may be gone in a second


class DownloadError(OSError):
    """No address gave the file; the message lists what each of them did."""


def fetch(addresses, path, sha256, advice, say):
    """`path`, downloaded from the first of `addresses` that gives the file with `sha256` unless it is there.

    Raises DownloadError that ends with `advice`: what else the user can do.
    """
    if is_right(path, sha256):
        return path
    with cache.locked(path, say):
        if is_right(path, sha256):                # another process was quicker
            return path
        faults = []
        for address in addresses:
            for attempt in range(ATTEMPTS):
                try:
                    with cache.replacing(path) as partial:
                        _download(address, partial, sha256, say)
                    return path
                except (OSError, http.client.HTTPException, ValueError) as error:
                    faults.append(f"  {address}: {_describe(error)}")
                    say(faults[-1].strip())
                    if not _may_pass(error) or attempt == ATTEMPTS - 1:
                        break
                    time.sleep(0.5 * 2**attempt)
        raise DownloadError("\n".join([f"could not download {path.name}:", *dict.fromkeys(faults), advice]))


def is_right(path, sha256):
    return path.is_file() and hash_of(path) == sha256


def hash_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(address, partial, sha256, say):
    digest, received = hashlib.sha256(), 0
    begun = reported = time.monotonic()
    request = urllib.request.Request(address, headers={"User-Agent": "minigpt"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, open(partial, "wb") as file:
        expected = int(response.headers.get("Content-Length") or 0)
        while block := response.read1(BLOCK):
            file.write(block)
            digest.update(block)
            received += len(block)
            now = time.monotonic()
            if now - begun > PATIENCE + received / SLOWEST:
                raise TimeoutError(f"only {received:,} bytes came in {now - begun:.0f} s")
            if now - reported > REPORT or received == expected:
                say(f"{address}: {received:,} bytes" + (f" of {expected:,}" if expected else ""))
                reported = now
    if received < expected:
        raise http.client.IncompleteRead(b"", expected - received)
    if digest.hexdigest() != sha256:
        raise ValueError(f"not the file that is meant: the {received:,} bytes that came have SHA-256 "
                         f"{digest.hexdigest()}, expected {sha256}")


def _may_pass(error):
    if isinstance(error, urllib.error.HTTPError):
        return error.code in PASSING
    if isinstance(error, urllib.error.URLError):  # no network, no such host, refused: waiting would not help
        return False
    return isinstance(error, (OSError, http.client.HTTPException))


def _describe(error):
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection ended {error.expected:,} bytes before the end of the file"
    if type(error) is urllib.error.URLError:
        error = error.reason
    return str(error) or type(error).__name__
