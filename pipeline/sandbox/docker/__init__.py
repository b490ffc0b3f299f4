"""The sandbox back end for machines with a container engine, near or far."""
