# Relative sources of an ordinary user and of root alike, also through a link.
mkdir "$TMP/real"
echo text >"$TMP/real/f"
ln -s real "$TMP/link"
cd "$TMP"
"$PX" exec -v link:/x:ro -- cat /x/f
"$PX" exec -v real/f:/y:ro -- cat /y
