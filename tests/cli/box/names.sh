# Names: what is one, who has it, and what to do then.
trap '"$PX" box stop --all' EXIT
for name in A a_b -a 'a b' .. a/b '' aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do
    says "$PX" box start --name="$name"
done
"$PX" box start --name taken
says "$PX" box start --name taken
says "$PX" exec -d --name taken -- true
for verb in 'exec nobody -- true' 'show nobody' 'logs nobody' 'attach nobody' 'stop nobody' 'signal nobody TERM' 'copy /etc/passwd nobody:/tmp' 'show ../x'; do
    says "$PX" box $verb
done
"$PX" box stop taken
"$PX" box start --name taken
