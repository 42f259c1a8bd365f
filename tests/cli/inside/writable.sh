"$PX" exec -c 'for d in /tmp /home/sandbox /dev/shm /var/tmp; do echo text >$d/f && mkdir $d/sub && cat $d/f && rm -r $d/f $d/sub; done'
"$PX" exec -c 'cp /usr/bin/true /tmp/t && /tmp/t && echo runs in /tmp; cp /usr/bin/true ~/t && ~/t && echo runs in home'
try "$PX" exec -c 'cp /usr/bin/true /dev/shm/t && /dev/shm/t' 2>/dev/null
