"""What every room needs: devices, seeds, files that appear whole, locks, registries."""
