"""What runs leave behind and read again: files on any file system, the log of a run, output folders, leases."""
