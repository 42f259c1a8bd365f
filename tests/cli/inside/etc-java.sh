# Java finds its settings in /etc, and nothing of its management, where passwords may be.
[ -e /etc/java-17-openjdk/security/java.security ] && [ -x /usr/bin/javac ] || skip 'Debian'"'"'s JDK 17 is not here'
printf 'public class A { public static void main(String[] a) { System.out.println("java " + java.security.Security.getProperty("securerandom.source")); } }\n' >A.java
"$PX" exec -v "$PWD:/src:ro" -c 'cd /src && /usr/bin/java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 A.java'
"$PX" exec -c 'test -e /etc/java-17-openjdk/management || echo "no management"; touch /etc/java-17-openjdk/security/java.policy 2>/dev/null || echo read-only'
