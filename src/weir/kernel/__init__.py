"""The join itself, one micro-batch at a time, on Arrow data and without any engine. Start reading at `batch`.

compiled   state_schema · physical_plan · access_path · index · keys · decision
stored     ingest · slice · slice_index · state · intermediate_state · row_window
probed     batch · path · half_join · index_probe · value_range · vector_similarity · time_range · partial ·
           row_ids · expensive_predicates · multi_stage_probe · output
skipped    live_keys · row_hash · probe_shedding · probe_sample · age_filter · lag_recorder
migrated   plan_migration · migration_state
"""
