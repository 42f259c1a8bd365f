# The outer tree is the caller's, but its links may be anybody's: none is followed, nothing is made where one leads.
mkdir "$TMP/outer" "$TMP/inner" "$TMP/elsewhere"
chmod 777 "$TMP/outer" "$TMP/elsewhere"
ln -s "$TMP/elsewhere" "$TMP/outer/x"
for place in /o /tmp/o /home/sandbox/o; do
    says "$PX" exec -v "$TMP/inner:$place/x/y" -v "$TMP/outer:$place" -- echo RAN
    says "$PX" exec -v "$TMP/outer:$place" -v "$TMP/inner:$place/x/y" -- echo RAN
done | grep -v '^[WF]' | sed 's/PX033 .*/PX033/'
find "$TMP/elsewhere" "$TMP/inner" -mindepth 1
