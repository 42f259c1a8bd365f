# A link at the end of a source may be what an earlier box has left there: it is refused, and the error says where it leads. A link
# inside the tree leads nowhere outside it.
mkdir "$TMP/real" "$TMP/tree" "$TMP/ws" "$TMP/ws/build" "$TMP/hostsecret"
echo real >"$TMP/real/f"
echo secret >"$TMP/secret"
echo key >"$TMP/hostsecret/key"
ln -s real "$TMP/link"
ln -s "$TMP/secret" "$TMP/tree/out"
ln -s ../../../../../../../etc/shadow "$TMP/tree/up"
ln -s /etc/hostname "$TMP/tree/abs"
ln -s nowhere "$TMP/dangling"
for source in link link/ link/. link//./; do
    says "$PX" exec -v "$TMP/$source:/x:ro" -c 'cat /x/f'
done
"$PX" exec -v "$TMP/tree:/t" -c 'cat /t/out /t/up 2>/dev/null; cat /t/abs'
says "$PX" exec -v "$TMP/dangling:/x" -- echo RAN
"$PX" exec -v "$TMP/ws:/w" -c 'rmdir /w/build && ln -s ../hostsecret /w/build'
says "$PX" exec -v "$TMP/ws/build:/build:ro" -- cat /build/key
says "$PX" exec --work-dir "$TMP/ws/build" -- cat key
says "$PX" exec --changes "$TMP/ws/build" -- cat key
# A link before the end is followed, and reported.
"$PX" --json exec -v "$TMP/ws/build/key:/key:ro" -- cat /key | jq -r '.stdout, .hints[]'
ln -s "$TMP/hostsecret" "$TMP/ws/abs"
"$PX" --json exec -v "$TMP/ws/abs/key:/key:ro" -- cat /key | jq -r '.hints | length'
