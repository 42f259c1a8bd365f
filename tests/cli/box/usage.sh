# Words that do not fit, each with what would.
trap '"$PX" box stop --all' EXIT
"$PX" box start --name u
for words in '' nosuch 'start -- true' 'start -t' 'start -d' 'start --nosuch' 'start --idle 0' 'start --idle soon' 'exec' 'exec -t u' 'exec u' 'exec u --' \
    'exec u --nosuch -- true' 'exec u -m 5m -- true' 'exec u --preset task -- true' 'exec u --plan -- true' 'exec u -v /etc -- true' 'exec u -d -t -- true' \
    'exec u -d --report r -- true' 'list u' 'list --nosuch' 'show' 'show u u' 'show --nosuch u' 'logs' 'logs u --command' 'logs u --stdout --stderr' 'logs u' \
    'attach u' 'attach u --command 7' 'copy u' 'copy a b' 'copy u:/x u:/y' 'copy --max-size=x u:/etc/passwd .' 'copy u:../x .' 'signal u' 'signal u NOSUCH' \
    'signal u 65' 'signal u TERM --command 0' 'signal u TERM --command 5' 'signal u TERM --process 1' 'signal u TERM --process 99999' 'stop' 'stop --all u'; do
    echo "px box $words"
    says "$PX" box $words
done
for words in '--name x' '--idle 1h' '--max-life 1h' '-d -t' '-d --report r' '-d --timings'; do
    echo "px exec $words"
    says "$PX" exec $words -- true
done
"$PX" box exec u -- echo still
"$PX" box list | sed 1d | cut -d' ' -f1
"$PX" box logs u 2>&1 | sed -n "/^Why:/{n;p}"
