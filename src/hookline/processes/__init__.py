"""Running programs: start them, feed and read their pipes, bound how many start at once, end all they started."""
