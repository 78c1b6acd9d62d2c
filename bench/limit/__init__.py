"""What this machine can do with nothing of ours in the way: what ours is held against."""
