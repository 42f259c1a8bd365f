# A command that wants more than its directory: links, set-id bits, names, and what its own directory becomes meanwhile.
need_changes
mkdir -p "$TMP/work/d" "$TMP/outside"
echo safe >"$TMP/outside/file"
chmod -R a+rwX "$TMP/outside"
"$PX" -q exec --changes "$TMP/work" --apply -c "cd /workspace; rmdir d; ln -s '$TMP/outside' d; ln -s '$TMP/outside/file' f; chmod 4755 /workspace 2>/dev/null; cp /bin/true tool; chmod 4755 tool 2>/dev/null; chmod 2775 . 2>/dev/null; true"
(cd "$TMP/work" && find . -printf '%p %y %m\n' | LC_ALL=C sort)
"$PX" -q exec --changes "$TMP/work" --apply -c 'cd /workspace; rm d; mkdir d; echo mine >d/file; rm f; echo mine >f'
cat "$TMP/work/d/file" "$TMP/work/f" "$TMP/outside/file"
# A name that a terminal would obey.
"$PX" exec --changes "$TMP/work" -c "cd /workspace; touch \"\$(printf 'a\\033[31m')\"" 2>&1
# The directory becomes a link while the command runs: the one that was there is worked on.
mkfifo "$TMP/go"
"$PX" -q exec -i --changes "$TMP/work" --apply -c 'cd /workspace; echo ready; read -r line; echo late >late' <"$TMP/go" >"$TMP/out" &
exec 3>"$TMP/go"
until_filled "$TMP/out"
mv "$TMP/work" "$TMP/moved" && ln -s "$TMP/outside" "$TMP/work"
echo go >&3 && exec 3>&-
wait $! && cat "$TMP/moved/late"
ls "$TMP/outside"
