"""What people look at: progress, tables and pictures."""
