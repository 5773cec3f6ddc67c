"""The experiments of Wang and Rundensteiner 2009: joins whose state is spread over a ring of machines."""
