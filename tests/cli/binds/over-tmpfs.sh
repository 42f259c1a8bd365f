# In the home, in /tmp, and in place of them.
mkdir "$TMP/a"
echo in-a >"$TMP/a/f"
chmod 777 "$TMP/a"
"$PX" exec -v "$TMP/a:/home/sandbox/project:ro" -v "$TMP/a/f:/tmp/x/y/f:ro" -c 'cat project/f /tmp/x/y/f; touch ~/other /tmp/x/z && echo "around it is writable"'
"$PX" exec -v "$TMP/a:/tmp" -c 'cat /tmp/f; touch /tmp/new'
ls "$TMP/a"
