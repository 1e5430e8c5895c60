// Common words as names of a program; neither coppice nor std may take one.
#pragma once
// Included after the using-directives of a test: each struct is a program's own, at global scope,
// and the tuple uses each. A library name that collides makes the use ambiguous.

#include <tuple>

struct acquire {};
struct release {};
struct relaxed {};
struct plain {};
struct result {};
struct directory {};
struct state {};
struct slot {};
struct entry {};
struct options {};
struct status {};
struct point {};
struct check {};
struct kind {};
struct item {};
struct job {};
struct worker {};
struct pool {};
struct config {};
struct settings {};
struct message {};
struct event {};
struct key {};
struct order {};
struct trade {};
struct quote {};
struct price {};
struct book {};
struct side {};
struct venue {};
struct account {};
struct user {};
struct session {};
struct guard {};
struct frame {};
struct step {};
struct phase {};
struct edge {};
struct graph {};
struct tree {};
struct leaf {};
struct root {};
struct parent {};
struct child {};
struct parser {};
struct lexer {};
struct scanner {};
struct reader {};
struct writer {};
struct input {};
struct output {};
struct row {};
struct column {};
struct cell {};
struct table {};
struct offset {};
struct interval {};
struct rate {};
struct delay {};
struct deadline {};
struct timestamp {};
struct tick {};
struct cache {};
struct registry {};
struct factory {};
struct builder {};
struct visitor {};
struct observer {};
struct listener {};
struct callback {};
struct action {};
struct command {};
struct query {};
struct answer {};
struct reply {};
struct record {};
struct tag {};
struct label {};
struct name {};
struct path {};
struct host {};
struct port {};
struct address {};
struct peer {};
struct packet {};
struct header {};
struct body {};
struct payload {};
struct chunk {};
struct page {};
struct segment {};
struct region {};
struct arena {};
struct ring {};
struct topic {};
struct group {};
struct batch {};
struct plan {};
struct stage {};
struct pipeline {};
struct flow {};
struct source {};
struct sink {};
struct target {};
struct origin {};
struct level {};
struct logger {};
struct gauge {};
struct metric {};
struct monitor {};
struct probe {};
struct strategy {};
struct rule {};
struct mask {};
struct flag {};
struct bits {};
struct vec {};
struct color {};
struct vertex {};
struct mesh {};
struct camera {};
struct scene {};
struct player {};
struct score {};
struct weight {};
struct cost {};
struct best {};
struct total {};
struct sum {};
struct difference {};
struct product {};
struct either {};
struct maybe {};
struct nothing {};
struct unit {};
struct behind {};
struct processor {};
struct kernel {};
struct ownership {};
struct clock_base {};
struct planted {};
struct sleepers {};
struct disarm {};
struct finished {};
struct linked {};
struct alternatives {};
struct callable {};
struct one_of {};
struct like_t {};
struct connects {};
struct diagnosis {};
struct concatenated {};
struct gathered {};
struct small_object {};
struct type_list {};
struct class_type {};
struct queryable {};
struct heap_timer {};
struct timer_heap {};
struct invoke_target {};
struct lower {};
struct trim {};
struct hex_value {};
struct byte_class {};
struct head_state {};
struct route_table {};
struct workers {};
struct descriptor {};
struct system_calls {};
struct acq_rel {};
struct seq_cst {};
struct work_item {};
struct shared_state {};
struct thread_slot {};
struct spin_hint {};
struct line_size {};
struct loop_state {};
struct stolen {};
struct slot_callback {};
struct stop_list {};
struct stop_node {};
struct in_flight {};
struct life_word {};
struct frame_pool {};
struct outcome_of {};
struct fork_deque {};
struct fork_slot {};
struct stopped {};
struct running {};
struct lock_state {};
struct waiter {};
struct notifier {};
struct bucket {};
struct shard {};
struct replica {};
struct cluster {};
struct leader {};
struct follower {};
struct snapshot {};
struct journal {};
struct ledger {};
struct balance {};
struct position {};
struct task_queue {};
struct job_queue {};
struct work_queue {};
struct message_queue {};
struct event_queue {};
struct event_loop {};
struct dispatcher {};
struct executor {};
struct connection {};
struct actor {};
struct token {};
struct identifier {};
struct timer_queue {};
struct clock_source {};
struct stopwatch {};
struct profiler {};
struct tracer {};
struct view {};
struct window {};
struct widget {};
struct document {};
struct element {};
struct attribute {};
struct property {};
struct value {};
struct object {};
struct resource {};
struct handle {};
struct texture {};
struct matrix {};
struct vector2 {};
struct rectangle {};
struct samples {};
struct statistics {};
struct summary {};
struct report {};
struct alert {};
struct sensor {};
struct device {};
struct driver {};
struct robot {};
struct state_machine {};
struct transition {};
struct condition {};
struct trigger {};
struct tokenizer {};
struct expression {};
struct statement {};
struct literal {};
struct symbol {};
struct scope {};
struct binding {};
struct environment {};
struct compiler {};
struct interpreter {};
struct heap {};
struct tag_list {};
struct customer {};
struct order_book {};
struct invoice {};
struct product_id {};
struct basket {};
struct payment {};
struct shipment {};
struct warehouse {};
struct sender_id {};
struct receiver_id {};
struct retry_policy {};
struct rate_limiter {};
struct circuit_breaker {};
struct connection_pool {};
struct thread_data {};
struct work_queue_entry {};

using common_words = std::tuple<
    acquire, release, relaxed, plain, result, directory, state, slot, entry, options, status, point,
    check, kind, item, job, worker, pool, config, settings, message, event, key, order, trade,
    quote, price, book, side, venue, account, user, session, guard, frame, step, phase, edge, graph,
    tree, leaf, root, parent, child, parser, lexer, scanner, reader, writer, input, output, row,
    column, cell, table, offset, interval, rate, delay, deadline, timestamp, tick, cache, registry,
    factory, builder, visitor, observer, listener, callback, action, command, query, answer, reply,
    record, tag, label, name, path, host, port, address, peer, packet, header, body, payload, chunk,
    page, segment, region, arena, ring, topic, group, batch, plan, stage, pipeline, flow, source,
    sink, target, origin, level, logger, gauge, metric, monitor, probe, strategy, rule, mask, flag,
    bits, vec, color, vertex, mesh, camera, scene, player, score, weight, cost, best, total, sum,
    difference, product, either, maybe, nothing, unit, behind, processor, kernel, ownership,
    clock_base, planted, sleepers, disarm, finished, linked, alternatives, callable, one_of, like_t,
    connects, diagnosis, concatenated, gathered, small_object, type_list, class_type, queryable,
    heap_timer, timer_heap, invoke_target, lower, trim, hex_value, byte_class, head_state,
    route_table, workers, descriptor, system_calls, acq_rel, seq_cst, work_item, shared_state,
    thread_slot, spin_hint, line_size, loop_state, stolen, slot_callback, stop_list, stop_node,
    in_flight, life_word, frame_pool, outcome_of, fork_deque, fork_slot, stopped, running,
    lock_state, waiter, notifier, bucket, shard, replica, cluster, leader, follower, snapshot,
    journal, ledger, balance, position, task_queue, job_queue, work_queue, message_queue,
    event_queue, event_loop, dispatcher, executor, connection, actor, token, identifier,
    timer_queue, clock_source, stopwatch, profiler, tracer, view, window, widget, document, element,
    attribute, property, value, object, resource, handle, texture, matrix, vector2, rectangle,
    samples, statistics, summary, report, alert, sensor, device, driver, robot, state_machine,
    transition, condition, trigger, tokenizer, expression, statement, literal, symbol, scope,
    binding, environment, compiler, interpreter, heap, tag_list, customer, order_book, invoice,
    product_id, basket, payment, shipment, warehouse, sender_id, receiver_id, retry_policy,
    rate_limiter, circuit_breaker, connection_pool, thread_data, work_queue_entry>;
