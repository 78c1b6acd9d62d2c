"""Figures of Workron: each module measures one of its properties and names the comparison."""
