/* DPDK's access control lists (rte_acl) on the ITCH rules of `weftwire-bench subscriptions`.
 *
 *   acl FILE
 *
 * FILE has the number of rules, then for each its symbol (8 bytes as hexadecimal) and the least price that
 * matches in whole dollars; then the number of messages and for each its symbol and price. Says how many messages match
 * some rule, and the million messages a second of the best of five rounds.
 *
 * rte_acl gives the one matching rule of the highest priority, not all that match: less than the engine does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_eal.h>

enum { FIELDS = 5, BATCH = 32 };

/* The first field must be one byte; the others come in groups of four bytes. */
struct message {
	uint8_t one;
	uint8_t nothing[3];
	uint32_t symbol[2];
	uint16_t price;
	uint16_t end;
};

RTE_ACL_RULE_DEF(rule, FIELDS);

static void fail(const char *what)
{
	fprintf(stderr, "acl: %s\n", what);
	exit(1);
}

static uint64_t number(const char *format)
{
	uint64_t value;

	if (scanf(format, &value) != 1)
		fail("the input ends early");
	return value;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char *eal[] = { "acl", "--no-huge", "--no-shconf", "--no-pci", "-l", "0", "-m", "2048", "--no-telemetry",
			"--log-level=error" };
	struct rte_acl_field_def fields[FIELDS] = {
		{ RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(struct message, one) },
		{ RTE_ACL_FIELD_TYPE_BITMASK, 4, 1, 1, offsetof(struct message, symbol[0]) },
		{ RTE_ACL_FIELD_TYPE_BITMASK, 4, 2, 2, offsetof(struct message, symbol[1]) },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, offsetof(struct message, price) },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, offsetof(struct message, end) },
	};
	struct rte_acl_config config = { .num_categories = 1, .num_fields = FIELDS };
	struct rte_acl_param parameters = { .name = "itch", .socket_id = -1, .rule_size = RTE_ACL_RULE_SZ(FIELDS) };
	struct rte_acl_ctx *list;
	struct message *messages;
	uint64_t rules, count, matched = 0;
	double best = 1e9;

	if (argc != 2 || freopen(argv[1], "r", stdin) == NULL)
		fail("usage: acl FILE");
	if (rte_eal_init(sizeof(eal) / sizeof(eal[0]), eal) < 0)
		fail("DPDK cannot be started");
	rules = number("%" SCNu64);
	parameters.max_rule_num = rules;
	list = rte_acl_create(&parameters);
	if (list == NULL)
		fail("no list could be made");
	for (uint64_t at = 0; at < rules; at++) {
		struct rule rule = { .data = { .userdata = at + 1, .category_mask = 1, .priority = 1 + at % 1000000 } };
		uint64_t symbol = number("%" SCNx64);

		rule.field[0].value.u8 = 1;
		rule.field[0].mask_range.u8 = 0xff;
		rule.field[1].value.u32 = symbol >> 32;
		rule.field[1].mask_range.u32 = UINT32_MAX;
		rule.field[2].value.u32 = symbol;
		rule.field[2].mask_range.u32 = UINT32_MAX;
		rule.field[3].value.u16 = number("%" SCNu64);
		rule.field[3].mask_range.u16 = UINT16_MAX;
		rule.field[4].mask_range.u16 = UINT16_MAX;
		if (rte_acl_add_rules(list, (struct rte_acl_rule *)&rule, 1) != 0)
			fail("a rule was refused");
	}
	memcpy(config.defs, fields, sizeof(fields));
	if (rte_acl_build(list, &config) != 0)
		fail("the list could not be built");
	count = number("%" SCNu64);
	messages = calloc(count, sizeof(*messages));
	if (messages == NULL)
		fail("there is not enough memory");
	for (uint64_t at = 0; at < count; at++) {
		uint64_t symbol = number("%" SCNx64);

		messages[at] = (struct message){ .one = 1,
			.symbol = { rte_cpu_to_be_32(symbol >> 32), rte_cpu_to_be_32((uint32_t)symbol) },
			.price = rte_cpu_to_be_16(number("%" SCNu64)) };
	}
	count -= count % BATCH;
	for (int round = 0; round < 5; round++) {
		double start = now();
		uint64_t found = 0;

		for (int again = 0; again < 64; again++)
			for (uint64_t at = 0; at < count; at += BATCH) {
				const uint8_t *data[BATCH];
				uint32_t results[BATCH];

				for (int i = 0; i < BATCH; i++)
					data[i] = (const uint8_t *)&messages[at + i];
				if (rte_acl_classify(list, data, results, BATCH, 1) != 0)
					fail("a batch was refused");
				for (int i = 0; i < BATCH; i++)
					found += results[i] != 0;
			}
		matched = found / 64;
		if (now() - start < best)
			best = now() - start;
	}
	printf("%" PRIu64 " %.2f\n", matched, count * 64 / best / 1e6);
	return 0;
}
