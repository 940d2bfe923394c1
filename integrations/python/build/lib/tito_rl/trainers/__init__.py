"""One module a trainer: samples in, that trainer's own objects out. Each checks first what the trainer cannot express."""
