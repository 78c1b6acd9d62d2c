"""What Workron does: each module measures one thing of it, and says what it is held against."""
