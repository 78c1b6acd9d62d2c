"""What people would use instead: each peer has a module that installs it and has it drain jobs."""
