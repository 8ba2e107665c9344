package io.lancegateway.flink.table;

import io.lancegateway.proto.v1.Call;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Operator;
import java.util.ArrayList;
import java.util.List;

/**
 * A condition that the gateway can check. Exact, or too generous: then it keeps every row that the
 * true condition keeps, and perhaps more.
 */
final class Predicate {

    private final Expression expression;
    private final boolean exact;
    private final int depth;

    private Predicate(Expression expression, boolean exact, int depth) {
        this.expression = expression;
        this.exact = exact;
        this.depth = depth;
    }

    /** A column of truth values. */
    static Predicate column(Expression column) {
        return new Predicate(column, true, 1);
    }

    /** An operator over columns and literals. */
    static Predicate test(Operator operator, List<Expression> arguments, boolean exact) {
        return new Predicate(call(operator, arguments), exact, 2);
    }

    static Predicate and(List<Predicate> parts) {
        return join(Operator.OPERATOR_AND, parts);
    }

    static Predicate or(List<Predicate> parts) {
        return join(Operator.OPERATOR_OR, parts);
    }

    /** The same, said to keep more than it should. */
    Predicate generous() {
        return new Predicate(expression, false, depth);
    }

    /** Of an exact predicate. */
    static Predicate of(Operator operator, Predicate exactArgument) {
        return new Predicate(
                call(operator, List.of(exactArgument.expression)), true, exactArgument.depth + 1);
    }

    private static Predicate join(Operator operator, List<Predicate> parts) {
        if (parts.size() == 1) {
            return parts.get(0);
        }
        List<Expression> arguments = new ArrayList<>();
        boolean exact = true;
        int depth = 0;
        for (Predicate part : parts) {
            exact &= part.exact;
            // Chains become flat: a long one is not a deep one.
            if (part.expression.getCall().getOperator() == operator) {
                arguments.addAll(part.expression.getCall().getArgumentsList());
                depth = Math.max(depth, part.depth);
            } else {
                arguments.add(part.expression);
                depth = Math.max(depth, part.depth + 1);
            }
        }
        return new Predicate(call(operator, arguments), exact, depth);
    }

    private static Expression call(Operator operator, List<Expression> arguments) {
        return Expression.newBuilder()
                .setCall(Call.newBuilder().setOperator(operator).addAllArguments(arguments))
                .build();
    }

    Expression expression() {
        return expression;
    }

    boolean exact() {
        return exact;
    }

    int depth() {
        return depth;
    }
}
