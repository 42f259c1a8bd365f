# /bin is a link into /usr: a place named through it is the same place.
printf '#!/bin/sh\necho replaced\n' >"$TMP/tool"
chmod 755 "$TMP/tool"
"$PX" exec -v "$TMP/tool:/bin/factor:ro" -- factor
