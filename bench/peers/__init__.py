"""Systems that Workron is compared with: each module installs one and lets it drain jobs."""
