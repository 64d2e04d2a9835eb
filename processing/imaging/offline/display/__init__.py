"""Pictures of images with their components in colour."""
