package io.lancegateway.client;

/** Another thread that does something and may wait in it. */
final class Waiter {

    interface Work {
        Object run() throws Exception;
    }

    private final Thread thread;
    private volatile Object result;
    private volatile Throwable thrown;

    Waiter(Work work) {
        thread =
                new Thread(
                        () -> {
                            try {
                                result = work.run();
                            } catch (Throwable e) {
                                thrown = e;
                            }
                        });
        thread.setDaemon(true);
        thread.start();
    }

    void awaitWaiting() {
        Eventually.holds(
                "the thread waits",
                () ->
                        thread.getState() == Thread.State.WAITING
                                || thread.getState() == Thread.State.TIMED_WAITING);
    }

    boolean isRunning() {
        return thread.isAlive();
    }

    void interrupt() {
        thread.interrupt();
    }

    Object result() throws InterruptedException {
        thread.join();
        if (thrown != null) {
            throw new AssertionError(thrown);
        }
        return result;
    }

    Throwable thrown() throws InterruptedException {
        thread.join();
        return thrown;
    }
}
