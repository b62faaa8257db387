"""`bough view`: run directories in a browser, read and never written."""
