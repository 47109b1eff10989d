"""Speed and memory, one question to a file, each answered as a ratio to a yardstick in the same run."""
