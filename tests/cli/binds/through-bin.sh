# /bin is a link into /usr: a place named through it is that place or is refused by name, and nothing is made behind the link.
printf '#!/bin/sh\necho replaced\n' >"$TMP/tool"
chmod 755 "$TMP/tool"
for name in factor px-test-tool; do
    status=0
    "$PX" exec -v "$TMP/tool:/bin/$name:ro" -- $name >"$TMP/out" 2>&1 || status=$?
    case $status/$(head -1 "$TMP/out") in
    0/replaced | 125/PX033*) echo fine ;;
    *) cat "$TMP/out" && echo "exit $status" ;;
    esac
done
[ ! -e /usr/bin/px-test-tool ] && echo 'nothing was made'
