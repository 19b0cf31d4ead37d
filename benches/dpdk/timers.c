/* The timers of DPDK (rte_timer) in the patterns of `weftwire-bench calendar`.
 *
 *   timers CASE TIMERS
 *
 * CASE is `arm`, `cancel` or `expire`. Says `ready` and the bytes of a timer when so many are set; then, for each line of standard input
 * with a number of pairs of operations, does them and answers with the nanoseconds that they took together.
 *
 * The time of rte_timer is the processor's counter of cycles. What is armed or cancelled lies an hour ahead, so that
 * nothing expires. What expires is spread so that a timer is due every 2,000 cycles: the order is all that matters to
 * a skip list, so that the distance is free to choose. Only those calls of rte_timer_manage() are timed that found a
 * timer; the waiting in between is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>

enum { GAP = 2000 };

static struct rte_timer *timers;
static uint64_t count, horizon, later, expired, oldest;
static uint64_t state = 1;

static uint64_t below(uint64_t end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint64_t)(((unsigned __int128)(state * 0x2545f4914f6cdd1dULL) * end) >> 64);
}

static void fail(const char *what)
{
	fprintf(stderr, "timers: %s\n", what);
	exit(1);
}

static void due(struct rte_timer *timer, void *argument);

static void set(struct rte_timer *timer, uint64_t ticks)
{
	if (rte_timer_reset(timer, ticks, SINGLE, rte_lcore_id(), due, NULL) != 0)
		fail("a timer could not be set");
}

static void due(struct rte_timer *timer, void *argument)
{
	(void)argument;
	expired++;
	set(timer, 1 + below(horizon));
}

static void stop(struct rte_timer *timer)
{
	if (rte_timer_stop(timer) != 0)
		fail("a timer could not be stopped");
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static double arm(uint64_t pairs)
{
	uint64_t start = now();
	for (uint64_t pair = 0; pair < pairs; pair++) {
		/* One more than are armed, so that a new one is set before the oldest is stopped. */
		uint64_t next = oldest == 0 ? count : oldest - 1;
		set(&timers[next], later);
		oldest = oldest == count ? 0 : oldest + 1;
		stop(&timers[next == count ? 0 : next + 1]);
	}
	return (double)(now() - start);
}

static double cancel(uint64_t pairs)
{
	uint64_t start = now();
	for (uint64_t pair = 0; pair < pairs; pair++) {
		struct rte_timer *any = &timers[below(count)];
		stop(any);
		set(any, later + below(horizon));
	}
	return (double)(now() - start);
}

static double expire(uint64_t pairs)
{
	uint64_t cycles = 0, until = expired + pairs;
	while (expired < until) {
		uint64_t before = expired, start = rte_get_timer_cycles();
		rte_timer_manage();
		if (expired != before)
			cycles += rte_get_timer_cycles() - start;
	}
	/* The last call may have found a few more. */
	return (double)cycles * (double)pairs / (double)(expired - (until - pairs)) * 1e9 / (double)rte_get_timer_hz();
}

int main(int argc, char **argv)
{
	char *eal[] = { "timers", "--no-huge", "--no-shconf", "--no-pci", "-l", "0", "-m", "64", "--no-telemetry",
			"--log-level=error" };
	double (*run)(uint64_t) = NULL;
	uint64_t pairs;

	if (argc == 3) {
		count = strtoull(argv[2], NULL, 10);
		run = !strcmp(argv[1], "arm") ? arm : !strcmp(argv[1], "cancel") ? cancel :
		      !strcmp(argv[1], "expire") ? expire : NULL;
	}
	if (run == NULL || count == 0) {
		fprintf(stderr, "usage: timers arm|cancel|expire TIMERS\n");
		return 2;
	}
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]), eal) < 0 || rte_timer_subsystem_init() != 0)
		fail("DPDK cannot be started");
	timers = aligned_alloc(64, (count + 1) * sizeof(*timers));
	if (timers == NULL)
		fail("there is not enough memory");
	later = rte_get_timer_hz() * 3600;
	horizon = run == expire ? GAP * count : rte_get_timer_hz();
	for (uint64_t timer = 0; timer <= count; timer++)
		rte_timer_init(&timers[timer]);
	for (uint64_t timer = 0; timer < count; timer++)
		set(&timers[timer], run == arm ? later : run == cancel ? later + below(horizon) : 1 + below(horizon));
	printf("ready %zu\n", sizeof(*timers));
	fflush(stdout);
	while (scanf("%lu", &pairs) == 1) {
		printf("%.0f\n", run(pairs));
		fflush(stdout);
	}
	return 0;
}
