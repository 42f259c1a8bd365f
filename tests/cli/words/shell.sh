# px shell without a terminal runs what it is given.
echo 'echo from the shell; echo $0' | "$PX" shell
"$PX" shell -- echo words
