package io.lancegateway.flink.table;

import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Operator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.table.expressions.CallExpression;
import org.apache.flink.table.expressions.FieldReferenceExpression;
import org.apache.flink.table.expressions.NestedFieldReferenceExpression;
import org.apache.flink.table.expressions.ResolvedExpression;
import org.apache.flink.table.expressions.ValueLiteralExpression;
import org.apache.flink.table.functions.BuiltInFunctionDefinitions;
import org.apache.flink.table.functions.FunctionDefinition;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/**
 * From Flink's conditions to the gateway's, where both mean the same.
 *
 * <p>Not the same, and so left to Flink: CHAR (padding), TIME (the table may hold finer ones than
 * Flink does), zero and NaN of floating point numbers (which the gateway orders totally), the
 * backslash in LIKE.
 */
final class FilterTranslator {

    /** Deeper conditions stay in Flink; the gateway takes at most 48 levels. */
    private static final int MAX_DEPTH = 24;

    private static final Map<FunctionDefinition, Operator> COMPARISONS =
            Map.of(
                    BuiltInFunctionDefinitions.EQUALS, Operator.OPERATOR_EQUAL,
                    BuiltInFunctionDefinitions.NOT_EQUALS, Operator.OPERATOR_NOT_EQUAL,
                    BuiltInFunctionDefinitions.LESS_THAN, Operator.OPERATOR_LESS,
                    BuiltInFunctionDefinitions.LESS_THAN_OR_EQUAL, Operator.OPERATOR_LESS_OR_EQUAL,
                    BuiltInFunctionDefinitions.GREATER_THAN, Operator.OPERATOR_GREATER,
                    BuiltInFunctionDefinitions.GREATER_THAN_OR_EQUAL,
                            Operator.OPERATOR_GREATER_OR_EQUAL);

    private static final Map<Operator, Operator> MIRRORED =
            Map.of(
                    Operator.OPERATOR_EQUAL, Operator.OPERATOR_EQUAL,
                    Operator.OPERATOR_NOT_EQUAL, Operator.OPERATOR_NOT_EQUAL,
                    Operator.OPERATOR_LESS, Operator.OPERATOR_GREATER,
                    Operator.OPERATOR_LESS_OR_EQUAL, Operator.OPERATOR_GREATER_OR_EQUAL,
                    Operator.OPERATOR_GREATER, Operator.OPERATOR_LESS,
                    Operator.OPERATOR_GREATER_OR_EQUAL, Operator.OPERATOR_LESS_OR_EQUAL);

    /** Columns that are read, if not all are. */
    @Nullable private final Set<String> readColumns;

    FilterTranslator(@Nullable Set<String> readColumns) {
        this.readColumns = readColumns;
    }

    /** The same condition, one that keeps more, or null. */
    @Nullable
    Predicate translate(ResolvedExpression condition) {
        Predicate predicate = predicate(condition);
        return predicate == null || predicate.depth() > MAX_DEPTH ? null : predicate;
    }

    @Nullable
    private Predicate predicate(ResolvedExpression condition) {
        if (!(condition instanceof CallExpression)) {
            Operand column = column(condition);
            return column != null && column.type.is(LogicalTypeRoot.BOOLEAN)
                    ? Predicate.column(column.expression)
                    : null;
        }
        FunctionDefinition function = ((CallExpression) condition).getFunctionDefinition();
        List<ResolvedExpression> arguments = condition.getResolvedChildren();
        if (function == BuiltInFunctionDefinitions.AND) {
            return and(arguments);
        } else if (function == BuiltInFunctionDefinitions.OR) {
            return or(arguments);
        } else if (function == BuiltInFunctionDefinitions.NOT) {
            return over(arguments.get(0), Operator.OPERATOR_NOT);
        } else if (function == BuiltInFunctionDefinitions.IS_TRUE) {
            return over(arguments.get(0), Operator.OPERATOR_IS_TRUE);
        } else if (function == BuiltInFunctionDefinitions.IS_FALSE) {
            return over(arguments.get(0), Operator.OPERATOR_IS_FALSE);
        } else if (function == BuiltInFunctionDefinitions.IS_NOT_TRUE) {
            return not(over(arguments.get(0), Operator.OPERATOR_IS_TRUE));
        } else if (function == BuiltInFunctionDefinitions.IS_NOT_FALSE) {
            return not(over(arguments.get(0), Operator.OPERATOR_IS_FALSE));
        } else if (function == BuiltInFunctionDefinitions.IS_NULL) {
            return nullTest(arguments.get(0), Operator.OPERATOR_IS_NULL);
        } else if (function == BuiltInFunctionDefinitions.IS_NOT_NULL) {
            return nullTest(arguments.get(0), Operator.OPERATOR_IS_NOT_NULL);
        } else if (function == BuiltInFunctionDefinitions.IN) {
            return in(arguments);
        } else if (function == BuiltInFunctionDefinitions.BETWEEN) {
            return between(arguments);
        } else if (function == BuiltInFunctionDefinitions.NOT_BETWEEN) {
            return not(between(arguments));
        } else if (function == BuiltInFunctionDefinitions.LIKE) {
            return like(arguments);
        }
        Operator comparison = COMPARISONS.get(function);
        return comparison == null ? null : comparison(comparison, arguments);
    }

    /** What of it can be checked; the rest makes it generous. */
    @Nullable
    private Predicate and(List<ResolvedExpression> conditions) {
        List<Predicate> parts = new ArrayList<>();
        for (ResolvedExpression condition : conditions) {
            Predicate part = predicate(condition);
            if (part != null) {
                parts.add(part);
            }
        }
        if (parts.isEmpty()) {
            return null;
        }
        Predicate all = Predicate.and(parts);
        return parts.size() == conditions.size() ? all : all.generous();
    }

    @Nullable
    private Predicate or(List<ResolvedExpression> conditions) {
        List<Predicate> parts = new ArrayList<>();
        for (ResolvedExpression condition : conditions) {
            Predicate part = predicate(condition);
            if (part == null) {
                return null;
            }
            parts.add(part);
        }
        return Predicate.or(parts);
    }

    @Nullable
    private Predicate over(ResolvedExpression condition, Operator operator) {
        Predicate argument = predicate(condition);
        return argument == null || !argument.exact() ? null : Predicate.of(operator, argument);
    }

    @Nullable
    private static Predicate not(@Nullable Predicate predicate) {
        return predicate == null || !predicate.exact()
                ? null
                : Predicate.of(Operator.OPERATOR_NOT, predicate);
    }

    @Nullable
    private Predicate nullTest(ResolvedExpression argument, Operator operator) {
        Operand column = column(argument);
        return column == null ? null : Predicate.test(operator, List.of(column.expression), true);
    }

    @Nullable
    private Predicate comparison(Operator operator, List<ResolvedExpression> arguments) {
        Operand column = column(arguments.get(0));
        ResolvedExpression other = arguments.get(1);
        if (column == null) {
            column = column(other);
            other = arguments.get(0);
            operator = MIRRORED.get(operator);
        }
        if (column == null || !(other instanceof ValueLiteralExpression)) {
            return null;
        }
        Expression literal =
                LiteralTranslator.translate((ValueLiteralExpression) other, column.type);
        boolean equality =
                operator == Operator.OPERATOR_EQUAL || operator == Operator.OPERATOR_NOT_EQUAL;
        if (literal == null || (!equality && !column.isOrdered())) {
            return null;
        }
        return Predicate.test(
                operator,
                List.of(column.expression, literal),
                equality || column.isTotallyOrdered());
    }

    @Nullable
    private Predicate in(List<ResolvedExpression> arguments) {
        Operand column = column(arguments.get(0));
        if (column == null) {
            return null;
        }
        List<Expression> values = new ArrayList<>();
        values.add(column.expression);
        for (ResolvedExpression argument : arguments.subList(1, arguments.size())) {
            Expression literal =
                    argument instanceof ValueLiteralExpression
                            ? LiteralTranslator.translate(
                                    (ValueLiteralExpression) argument, column.type)
                            : null;
            if (literal == null) {
                return null;
            }
            values.add(literal);
        }
        return Predicate.test(Operator.OPERATOR_IN, values, true);
    }

    @Nullable
    private Predicate between(List<ResolvedExpression> arguments) {
        List<ResolvedExpression> lower = List.of(arguments.get(0), arguments.get(1));
        List<ResolvedExpression> upper = List.of(arguments.get(0), arguments.get(2));
        Predicate from = comparison(Operator.OPERATOR_GREATER_OR_EQUAL, lower);
        Predicate to = comparison(Operator.OPERATOR_LESS_OR_EQUAL, upper);
        return from == null || to == null ? null : Predicate.and(List.of(from, to));
    }

    /**
     * A pattern without an escape: the gateway takes the backslash for one, Flink does not. An
     * underscore matches a line break here and not in Flink.
     */
    @Nullable
    private Predicate like(List<ResolvedExpression> arguments) {
        Operand column = column(arguments.get(0));
        if (arguments.size() != 2
                || column == null
                || !column.type.is(LogicalTypeRoot.VARCHAR)
                || !(arguments.get(1) instanceof ValueLiteralExpression)) {
            return null;
        }
        ValueLiteralExpression literal = (ValueLiteralExpression) arguments.get(1);
        String pattern = literal.getValueAs(String.class).orElse(null);
        Expression translated = LiteralTranslator.translate(literal, column.type);
        if (pattern == null || translated == null || pattern.indexOf('\\') >= 0) {
            return null;
        }
        return Predicate.test(
                Operator.OPERATOR_LIKE,
                List.of(column.expression, translated),
                pattern.indexOf('_') < 0);
    }

    /** A column, also below a cast that only widens it: its values compare in the same way. */
    @Nullable
    private Operand column(ResolvedExpression expression) {
        if (expression instanceof CallExpression) {
            CallExpression call = (CallExpression) expression;
            if (call.getFunctionDefinition() != BuiltInFunctionDefinitions.CAST) {
                return null;
            }
            Operand column = column(call.getResolvedChildren().get(0));
            LogicalType target = call.getOutputDataType().getLogicalType();
            return column != null && widens(column.type, target) ? column : null;
        }
        List<String> path;
        if (expression instanceof FieldReferenceExpression) {
            path = List.of(((FieldReferenceExpression) expression).getName());
        } else if (expression instanceof NestedFieldReferenceExpression) {
            path = Arrays.asList(((NestedFieldReferenceExpression) expression).getFieldNames());
        } else {
            return null;
        }
        if (readColumns != null && !readColumns.contains(path.get(0))) {
            return null;
        }
        LogicalType type = expression.getOutputDataType().getLogicalType();
        return new Operand(
                Expression.newBuilder().setColumn(Column.newBuilder().addAllPath(path)).build(),
                type);
    }

    private static boolean widens(LogicalType from, LogicalType to) {
        LogicalTypeRoot root = from.getTypeRoot();
        switch (to.getTypeRoot()) {
            case SMALLINT:
                return root == LogicalTypeRoot.SMALLINT || root == LogicalTypeRoot.TINYINT;
            case INTEGER:
                return isInteger(root) && root != LogicalTypeRoot.BIGINT;
            case BIGINT:
                return isInteger(root);
            case DOUBLE:
                return root == LogicalTypeRoot.FLOAT || root == LogicalTypeRoot.DOUBLE;
            case DECIMAL:
                return root == LogicalTypeRoot.DECIMAL
                        && widens((DecimalType) from, (DecimalType) to);
            case VARCHAR:
                return root == LogicalTypeRoot.VARCHAR
                        && LogicalTypeChecks.getLength(to) >= LogicalTypeChecks.getLength(from);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return root == to.getTypeRoot()
                        && LogicalTypeChecks.getPrecision(to)
                                >= LogicalTypeChecks.getPrecision(from);
            default:
                return from.copy(true).equals(to.copy(true));
        }
    }

    private static boolean widens(DecimalType from, DecimalType to) {
        return to.getScale() >= from.getScale()
                && to.getPrecision() - to.getScale() >= from.getPrecision() - from.getScale();
    }

    private static boolean isInteger(LogicalTypeRoot root) {
        switch (root) {
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return true;
            default:
                return false;
        }
    }

    /** A column and its type as declared. */
    private static final class Operand {
        private final Expression expression;
        private final LogicalType type;

        Operand(Expression expression, LogicalType type) {
            this.expression = expression;
            this.type = type;
        }

        boolean isOrdered() {
            return !type.is(LogicalTypeRoot.VARBINARY) && !type.is(LogicalTypeRoot.BOOLEAN);
        }

        /**
         * Whether there is no NaN, which is above all numbers for the gateway and none for Flink.
         */
        boolean isTotallyOrdered() {
            return !type.is(LogicalTypeRoot.FLOAT) && !type.is(LogicalTypeRoot.DOUBLE);
        }
    }
}
