#!/bin/sh
# Checks that the Java which Spark would start is there and is new enough.
# Spark takes $JAVA_HOME/bin/java when JAVA_HOME is set, else the java on the PATH; so does this check.
# It uses shell builtins only, so that it runs wherever there is a shell.

needed=17

explain() {
    echo "Strandline needs Java $needed or newer, because Apache Spark 4 runs on it."
    echo "$1"
    echo
    echo "To get one:"
    echo "  Debian, Ubuntu   sudo apt install openjdk-17-jre-headless   (or openjdk-21-jre-headless)"
    echo "  macOS            brew install openjdk@17"
    echo "  anywhere         sdk install java 17.0.15-tem               (SDKMAN)"
    echo "If it is installed but not found, set JAVA_HOME to its folder, the one that holds bin/java."
} >&2

if [ -n "${JAVA_HOME:-}" ]; then
    java=$JAVA_HOME/bin/java
    if [ ! -x "$java" ]; then
        explain "Found: JAVA_HOME is $JAVA_HOME, but there is no program $java."
        exit 1
    fi
    where="$java (from JAVA_HOME)"
else
    java=$(command -v java)
    if [ -z "$java" ]; then
        explain "Found: no java on the PATH, and JAVA_HOME is not set."
        exit 1
    fi
    where="$java (from the PATH)"
fi

# Other lines may come before the version, such as "Picked up JAVA_TOOL_OPTIONS: ...".
output=$("$java" -version 2>&1)
line=
while IFS= read -r each; do
    case $each in
        *' version "'*) line=$each; break ;;
    esac
done <<EOF
$output
EOF

if [ -z "$line" ]; then
    explain "Found: $where, which does not tell its version; \"java -version\" printed: ${output:-nothing}"
    exit 1
fi

version=${line#*\"}
version=${version%%\"*}
major=${version#1.} # Java 8 and older call themselves 1.8 and so on
major=${major%%[!0-9]*}

if [ "${major:-0}" -lt "$needed" ]; then
    explain "Found: $line, at $where."
    exit 1
fi
