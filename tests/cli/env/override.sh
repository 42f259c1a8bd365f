# What every box has can be set otherwise.
"$PX" exec -e HOME=/tmp -e LANG=C -e TERM=vt100 -e PATH=/usr/bin -- /usr/bin/env | sort
