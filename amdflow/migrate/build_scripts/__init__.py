"""Build scripts: CMake, make and setup.py files, converted where rules suffice."""
