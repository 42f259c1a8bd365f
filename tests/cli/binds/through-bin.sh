# /bin is a link into /usr, and px follows no link when it mounts: refused by name, nothing is made behind it.
printf '#!/bin/sh\necho replaced\n' >"$TMP/tool"
chmod 755 "$TMP/tool"
says "$PX" exec -v "$TMP/tool:/bin/px-test-tool:ro" -- true
says "$PX" exec -v "$TMP/tool:/bin/factor:ro" -- true
[ ! -e /usr/bin/px-test-tool ] && echo 'nothing was made'
