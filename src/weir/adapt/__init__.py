"""When do we change our mind? What is known of the streams, and the plan and the shedding that follow."""
