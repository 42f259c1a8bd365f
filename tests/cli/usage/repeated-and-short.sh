# The last one wins; short options can be put together and touch their value.
"$PX" exec --hostname one --hostname two -- hostname
"$PX" exec -w/tmp -e A=1 -eB=2 -c 'pwd; echo $A$B'
echo text | "$PX" exec -ic 'cat'
"$PX" exec --workdir=/tmp --env=A=b=c -c 'pwd; echo $A'
