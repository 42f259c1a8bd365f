# Relative sources of an ordinary user and of root alike; a link is refused there, too.
mkdir "$TMP/real"
echo text >"$TMP/real/f"
ln -s real "$TMP/link"
cd "$TMP"
says "$PX" exec -v link:/x:ro -- cat /x/f
"$PX" exec -v real/f:/y:ro -- cat /y
"$PX" exec -v .:/z:ro -- cat /z/real/f
