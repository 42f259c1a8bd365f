# Where the caller stands does not matter, even if it is gone or cannot be read.
mkdir "$TMP/gone"
cd "$TMP/gone"
rmdir "$TMP/gone"
"$PX" exec -- pwd
