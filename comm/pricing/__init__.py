"""What a schedule costs on a described cluster: links shared fairly, orders of ranks that fit, the loss of a rank."""
