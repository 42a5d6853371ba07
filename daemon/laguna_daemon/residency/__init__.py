"""What the engine holds of each repository, and how it stays: who may run when, prefills in segments, touching.

All requests pass `work`, which admits them (`admission`, `lane`, `pool`), counts what they compute, and keeps the
belief of each prefix (`prefixes`). `traffic` says who waits, `prefill` and `pace` bring long prompts in, `touching`
keeps them. Nothing here knows of questions or of what folders hold; `service.warming` decides what to warm.
"""
