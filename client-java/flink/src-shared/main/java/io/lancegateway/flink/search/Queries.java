package io.lancegateway.flink.search;

import io.lancegateway.proto.v1.BooleanQuery;
import io.lancegateway.proto.v1.FullTextQuery;
import io.lancegateway.proto.v1.HybridQuery;
import io.lancegateway.proto.v1.TextQuery;
import io.lancegateway.proto.v1.Vector;
import io.lancegateway.proto.v1.VectorQuery;
import javax.annotation.Nullable;

/** Puts what a query brings into the search that was planned. */
final class Queries {

    /** Rows of a search that does not say how many, as the gateway has it. */
    private static final long DEFAULT_K = 10;

    /**
     * Candidates of an HNSW index, as other connectors have it. More, where more rows are wanted:
     * fewer candidates than these are refused.
     */
    private static final long DEFAULT_EF = 100;

    private Queries() {}

    /**
     * @param k rows to find; null: as planned, else the gateway's default
     */
    static VectorQuery vector(VectorQuery planned, Vector vector, @Nullable Long k) {
        VectorQuery.Builder query = planned.toBuilder().setVector(vector);
        if (k != null) {
            query.setK(checked(k));
        }
        long rows = query.hasK() ? query.getK() : DEFAULT_K;
        return withEffort(query, rows + query.getOffset());
    }

    static FullTextQuery text(FullTextQuery planned, String text, @Nullable Long k) {
        FullTextQuery.Builder query = planned.toBuilder();
        query.setQuery(withText(planned.getQuery(), text));
        if (k != null) {
            query.setK(checked(k));
        }
        return query.build();
    }

    static HybridQuery hybrid(HybridQuery planned, Vector vector, String text, @Nullable Long k) {
        HybridQuery.Builder query = planned.toBuilder();
        if (k != null) {
            query.setK(checked(k));
        }
        VectorQuery.Builder near = planned.getVector().toBuilder().setVector(vector);
        long rows = query.hasK() ? query.getK() : DEFAULT_K;
        return query.setVector(
                        withEffort(near, near.hasK() ? near.getK() : rows + query.getOffset()))
                .setText(text(planned.getText(), text, null))
                .build();
    }

    static VectorQuery withEffort(VectorQuery.Builder query, long rows) {
        if (query.getEf() == 0) {
            long refined = rows * Math.max(1, query.getRefineFactor());
            // Too many are refused by the gateway, by the name of the bound.
            query.setEf((int) Math.min(Math.max(DEFAULT_EF, refined), Integer.MAX_VALUE));
        }
        return query.build();
    }

    private static long checked(long k) {
        if (k < 0) {
            throw new IllegalArgumentException("k is " + k + "; it must be 1 or more");
        }
        return k;
    }

    private static TextQuery withText(TextQuery planned, String text) {
        TextQuery.Builder query = planned.toBuilder();
        switch (planned.getKindCase()) {
            case MATCH:
                query.getMatchBuilder().setText(text);
                break;
            case PHRASE:
                query.getPhraseBuilder().setText(text);
                break;
            default:
                BooleanQuery.Builder columns = query.getBooleanBuilder().clearShould();
                planned.getBoolean()
                        .getShouldList()
                        .forEach(column -> columns.addShould(withText(column, text)));
        }
        return query.build();
    }
}
