/*
 * Alternating paths and lower prices for an auction's last units. Internal to match.h.
 *
 * Purpose. Where many columns are worth nearly the same to a row, the last units of a phase wander: each bid moves one unit to a
 * near tie and puts another out, and the free column is far away or a little too dear for everybody. Two steps end that:
 *
 *  - a breadth-first search along columns within eps of each row's best, which either meets a free column - then everybody on the path
 *    moves over, at unchanged prices - or finds the reached set closed; then all of its prices rise at once, as in the Hungarian
 *    method, by as much as keeps eps-complementary slackness. With best a row's greatest value, own its value where it is, out its
 *    greatest value over columns not reached: own - delta >= max(best - delta, out) - eps for each reached row, so delta = min(own +
 *    eps - out);
 *  - a free column's price falls to where the first row wants it: max over rows of w - best. No row's best changes by that; where
 *    the column is now above a row's threshold, the threshold follows.
 *
 * Only for columns of one slot each.
 */
#pragma once

#include "match/auction.h"

enum td_augment {
	TD_AUGMENT_FOUND,  /* the unit has a column */
	TD_AUGMENT_RAISED, /* prices have risen: search again, or bid */
	TD_AUGMENT_STUCK,  /* nothing has changed */
};

/* *ret_reached: columns reached, what the search has cost. */
enum td_augment td_augment_search(
	struct td_auction *auction, uint32_t unit, float eps, uint32_t *ret_reached);
