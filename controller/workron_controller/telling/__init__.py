"""From the store to the objects of the cluster: how a job stands, as its object's status."""
