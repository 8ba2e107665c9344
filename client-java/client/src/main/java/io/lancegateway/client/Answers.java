package io.lancegateway.client;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowFormatException;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.v1.LookupAnswer;
import io.lancegateway.proto.v1.QueryAnswer;
import io.lancegateway.proto.v1.QueryError;
import java.util.ArrayList;
import java.util.List;

/**
 * Puts the messages of an exchange together to answers: of one query each in a stream of searches,
 * of all queries of one batch in a stream of lookups.
 */
abstract class Answers {

    private final BatchDecoder decoder = new BatchDecoder();

    /** Who gets the answers. */
    interface Receiver {

        /** Queries of the stream from {@code first} on have found the rows, a list for each. */
        void found(long first, List<FoundRows> rows);

        /** A query failed; in a stream of lookups with all others of its batch. */
        void failed(long query, Failure failure);
    }

    static Answers ofSearches(Receiver receiver) {
        return new OfSearches(receiver);
    }

    static Answers ofLookups(Receiver receiver, QueriesOfBatch queries) {
        return new OfLookups(receiver, queries);
    }

    /** How many queries the batch with this first query has. */
    interface QueriesOfBatch {
        int count(long first);
    }

    /**
     * Takes the next message.
     *
     * @throws ArrowFormatException if it is no answer
     */
    final void take(FlightMessage message) {
        ArrowBatch batch = null;
        if (message.header.hasRemaining()) {
            batch = decoder.decode(message.header, message.body);
        }
        try {
            take(batch, message.about);
        } catch (InvalidProtocolBufferException e) {
            throw new ArrowFormatException("the bytes beside the rows are no answer", e);
        }
    }

    abstract void take(ArrowBatch batch, byte[] about) throws InvalidProtocolBufferException;

    private static Failure failure(QueryError error) {
        return Failure.local(
                Reason.of(error.getReason()), error.getReason() + ": " + error.getMessage(), null);
    }

    /** What is said of an answer comes with its first rows. */
    private static final class OfSearches extends Answers {

        private final Receiver receiver;
        private QueryAnswer current;
        private FoundRows rows;

        OfSearches(Receiver receiver) {
            this.receiver = receiver;
        }

        @Override
        void take(ArrowBatch batch, byte[] about) throws InvalidProtocolBufferException {
            if (batch == null) {
                return;
            }
            if (current == null) {
                current = QueryAnswer.parseFrom(about);
                rows = new FoundRows(current.getInfo().getVersion());
            }
            if (current.hasError()) {
                receiver.failed(current.getQuery(), failure(current.getError()));
                current = null;
                return;
            }
            for (int row = 0; row < batch.rows(); row++) {
                rows.add(batch, row);
            }
            if (rows.size() >= current.getInfo().getNumRows()) {
                receiver.found(current.getQuery(), List.of(rows));
                current = null;
            }
        }
    }

    /** What is said of an answer comes with its last rows. */
    private static final class OfLookups extends Answers {

        private final Receiver receiver;
        private final QueriesOfBatch queries;
        private final List<ArrowBatch> batches = new ArrayList<>();

        OfLookups(Receiver receiver, QueriesOfBatch queries) {
            this.receiver = receiver;
            this.queries = queries;
        }

        @Override
        void take(ArrowBatch batch, byte[] about) throws InvalidProtocolBufferException {
            if (batch != null) {
                batches.add(batch);
            }
            if (about.length == 0) {
                return;
            }
            LookupAnswer answer = LookupAnswer.parseFrom(about);
            long first = answer.getFirstQuery();
            if (answer.hasError()) {
                receiver.failed(first, failure(answer.getError()));
            } else {
                receiver.found(first, split(first, answer.getVersion()));
            }
            batches.clear();
        }

        private List<FoundRows> split(long first, long version) {
            List<FoundRows> found = new ArrayList<>();
            for (int query = 0; query < queries.count(first); query++) {
                found.add(new FoundRows(version));
            }
            for (ArrowBatch batch : batches) {
                FixedWidthVector query = (FixedWidthVector) batch.column(0);
                for (int row = 0; row < batch.rows(); row++) {
                    long index = query.getLong(row) - first;
                    if (index < 0 || index >= found.size()) {
                        throw new ArrowFormatException("rows for a key that was not asked");
                    }
                    found.get((int) index).add(batch, row);
                }
            }
            return found;
        }
    }
}
