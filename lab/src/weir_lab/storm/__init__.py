"""One query through six phases on Spark: what adaptation holds, and what it costs."""
