"""The ring of Wang and Rundensteiner (2009) itself: nodes, wires and messages on a virtual clock."""
