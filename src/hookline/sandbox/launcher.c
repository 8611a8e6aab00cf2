/* Starts a confined line without an interpreter of its own: `launcher SOCKET N PYTHON … FLAGS … -- COMMAND …`.
 *
 * The resident service listens at the socket and hands the request to a crew that waits. This process stays in the
 * caller's session and group in the line's place: what is sent to it is handed on to the line, its end is the line's
 * end, and its exit code is the line's. The first N words behind N start an interpreter that does the same. They are
 * executed, with the rest, wherever a crew cannot stand in: there is a terminal, a descriptor above 9, no service.
 *
 * The request is a packet with descriptors: a socket for two numbers (the line's group, and its exit code, of which one
 * byte says that it has arrived), a file in Python's marshal format (folder, words, variables, the numbers of the descriptors that follow, file mask and limits), and those.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { FAILED = 125, FREE = 10, LIMITS = 16 };

extern char **environ;
static char *order;
static size_t size, room;
static volatile pid_t group; /* the line's */

static void put(const void *data, size_t length) {
    if (size + length > room) {
        room = 2 * (size + length) + 4096;
        if (!(order = realloc(order, room))) _exit(FAILED);
    }
    memcpy(order + size, data, length);
    size += length;
}

static void put_number(char kind, uint32_t value) {
    put(&kind, 1);
    put(&value, 4); /* lowest byte first, as on every machine that lines can be confined on */
}

static void put_bytes(const void *data, size_t length) {
    put_number('s', length);
    put(data, length);
}

static void put_list(char **texts, int count) {
    put_number('[', count);
    for (int at = 0; at < count; at++) put_bytes(texts[at], strlen(texts[at]));
}

/* The descriptors that the command would inherit, by number; -1 if there is one that a crew cannot give it. */
static int inherited(int *found) {
    int count = 0, number, flags;
    for (number = 0; number < FREE; number++)
        if ((flags = fcntl(number, F_GETFD)) >= 0 && !(flags & FD_CLOEXEC)) found[count++] = number;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder || count < 3 || found[2] != 2) return -1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        number = atoi(entry->d_name);
        if (number >= FREE && (flags = fcntl(number, F_GETFD)) >= 0 && !(flags & FD_CLOEXEC)) return -1;
    }
    closedir(folder);
    return count;
}

/* All that the crew has to know, as a file; -1 if it cannot be said. */
static int written_order(char **words, int count, int *given, int descriptors) {
    char folder[4096], state[8 + LIMITS * 16];
    uint64_t mask = umask(0);
    umask(mask);
    memcpy(state, &mask, 8);
    for (int each = 0; each < LIMITS; each++) {
        struct rlimit limit;
        if (getrlimit(each, &limit) < 0) return -1;
        uint64_t both[] = {limit.rlim_cur, limit.rlim_max};
        memcpy(state + 8 + 16 * each, both, 16);
    }
    int variables = 0;
    while (environ[variables]) variables++;
    if (!getcwd(folder, sizeof folder)) return -1;
    put_number('(', 5);
    put_bytes(folder, strlen(folder));
    put_list(words, count);
    put_list(environ, variables);
    put_number('[', descriptors);
    for (int at = 0; at < descriptors; at++) put_number('i', given[at]);
    put_bytes(state, sizeof state);
    int file = memfd_create("line", MFD_CLOEXEC);
    return file >= 0 && write(file, order, size) == (ssize_t)size ? file : -1;
}

/* Ask for a crew: the socket on which it answers, or -1. */
static int request(const char *path, char **words, int count) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int given[FREE], status[2], terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int descriptors = inherited(given);
    if (terminal >= 0 || isatty(0) || isatty(1) || isatty(2) || descriptors < 0) return -1;
    if (strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    int channel = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (channel < 0 || connect(channel, (struct sockaddr *)&address, sizeof address) < 0) return -1;
    int file = written_order(words, count, given, descriptors);
    if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, status) < 0) return -1;
    int sent[FREE + 2] = {status[1], file};
    memcpy(sent + 2, given, sizeof *given * descriptors);
    size_t length = sizeof *sent * (descriptors + 2);
    char control[CMSG_SPACE(sizeof sent)] = {0};
    struct iovec part = {".", 1};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(rights), sent, length);
    if (sendmsg(channel, &head, MSG_NOSIGNAL) < 0) return -1;
    close(status[1]);
    close(file);
    return status[0];
}

/* The next number from the crew; 0 if there will be none. */
static int told(int status, uint32_t *number) {
    ssize_t got;
    do got = read(status, number, 4);
    while (got < 0 && errno == EINTR);
    return got == 4;
}

static void hand_on(int number) {
    kill(-group, number);
    if (number == SIGTSTP) raise(SIGSTOP);
}

int main(int argc, char **argv) {
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGALRM};
    uint32_t number = 0, code = 0;
    int own = argc > 3 ? 3 + atoi(argv[2]) : 0;
    if (own <= 3 || own >= argc) return 64;
    int status = request(argv[1], argv + own, argc - own);
    if (status < 0 || !told(status, &number)) {
        execvp(argv[3], argv + 3);
        return FAILED;
    }
    group = number;
    for (size_t at = 0; at < sizeof signals / sizeof *signals; at++) signal(signals[at], hand_on);
    if (told(status, &code)) {
        send(status, ".", 1, MSG_NOSIGNAL);
        return code;
    }
    dprintf(2, "hookline confine: the supervisor was ended, and so is the line\n");
    return FAILED;
}
