/*
 * Alternating paths and lower prices for an auction's last units. Internal to match.h.
 *
 * Purpose. Where many columns are worth nearly the same to a row, the last units of a phase wander:
 * each bid moves one unit to a near tie and displaces another, and the free column is far away or a
 * little too dear for everybody. A search ends that. It goes breadth-first along the columns within
 * eps of each row's best. If it meets a free column, everybody on the path moves over, at unchanged
 * prices. If the reached set is closed, all of its prices rise at once, as in the Hungarian method,
 * by the most that keeps eps-complementary slackness. With best a row's greatest value, own its
 * value where it is, and out its greatest value over columns not reached, own - delta >= max(best -
 * delta, out) - eps must hold for each reached row, so delta = min(own + eps - out).
 *
 * A row's near ties are those of its list. A path outside the lists is not seen, which costs a bid,
 * not the bound.
 *
 * Invariants: all units that have a column have eps-complementary slackness, before and after.
 * FOUND: one more unit has a column, and no unit has lost its own. RAISED: each reached price has
 * risen by at least eps / 2. Applies only to columns of one slot each.
 */
#pragma once

#include "match/auction.h"

enum td_augment {
	TD_AUGMENT_FOUND,  /* the unit has a column now */
	TD_AUGMENT_RAISED, /* prices have risen: search again, or bid */
	TD_AUGMENT_STUCK,  /* nothing has changed, so bid */
};

/*
 * Searches a column for a unit. *ret_reached is the number of columns reached, the cost of the
 * search.
 */
enum td_augment td_augment_search(
	struct td_auction *auction, uint32_t unit, float eps, uint32_t *ret_reached);
