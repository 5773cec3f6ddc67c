"""Jobs as text: `CREATE STREAM` statements and one `SELECT ... INTO`, for `weir run` and `weir explain`."""
