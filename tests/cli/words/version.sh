"$PX" --version
